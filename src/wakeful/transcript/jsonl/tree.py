"""The tree of a file: on which branch each line lies, and how deep."""

from array import array


class Tree:
    """Lines by number; a line that does not follow the newest of its branch opens another."""

    def __init__(self) -> None:
        self.branch_of = array("I")
        self.depth_of = array("I")
        self._parents = array("i")  # of each branch; -1: it has none
        self._fork_depths = array("i")
        self._leaves = array("I")  # the newest line of each branch

    def __len__(self) -> int:
        return len(self.branch_of)

    @property
    def branches(self) -> int:
        return len(self._parents)

    def add(self, parent: int | None) -> int:
        """Add the next line below another, or as a root; return its number."""
        number = len(self.branch_of)
        if parent is None:
            branch, depth = self._open(0 if self._parents else -1, -1), 0
        else:
            branch, depth = self.branch_of[parent], self.depth_of[parent] + 1
            if self._leaves[branch] != parent:
                branch = self._open(branch, depth - 1)
        self.branch_of.append(branch)
        self.depth_of.append(depth)
        self._leaves[branch] = number
        return number

    def fork(self, branch: int) -> tuple[int, int]:
        """Return which branch another one left, and the depth of the last line they share."""
        return self._parents[branch], self._fork_depths[branch]

    def is_above(self, number: int, line: int) -> bool:
        """Tell whether a line lies on the path from another one to its root."""
        wanted, depth = self.branch_of[number], self.depth_of[number]
        branch, reach = self.branch_of[line], self.depth_of[line]
        while branch != wanted and branch >= 0:
            reach = min(reach, self._fork_depths[branch])
            branch = self._parents[branch]
        return branch == wanted and depth <= reach

    def _open(self, parent: int, fork_depth: int) -> int:
        self._parents.append(parent)
        self._fork_depths.append(fork_depth)
        self._leaves.append(0)
        return len(self._parents) - 1
