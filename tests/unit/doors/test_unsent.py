"""Who is cut off because of what they do not read."""

from wakeful.doors.http.unsent import LOOK_S, MOST_UNSENT, TAKE_S, Unsent
from wakeful.vocabulary.clock import ManualClock

LOOKS = round(TAKE_S / LOOK_S) + 1


class Line:
    """A connection whose other side takes as much as a test says."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0
        self.is_cut = False

    def get_write_buffer_size(self) -> int:
        return 0 if self.is_cut else self.size - self.taken

    def abort(self) -> None:
        self.is_cut = True


def test_whoever_takes_nothing_is_cut_off():
    clock, line = ManualClock(), Line(1000)
    Unsent(clock).note(line)

    clock.advance(TAKE_S - 1)
    was_cut = line.is_cut
    for _ in range(LOOKS):
        clock.advance(LOOK_S)

    assert (was_cut, line.is_cut) == (False, True)


def test_whoever_takes_a_little_now_and_then_is_left_alone():
    clock, line = ManualClock(), Line(1000)
    Unsent(clock).note(line)

    for _ in range(3):
        clock.advance(TAKE_S - LOOK_S)
        line.taken += 1
        clock.advance(LOOK_S)

    assert not line.is_cut


def test_when_there_is_too_much_those_make_room_who_took_nothing_for_longest():
    clock = ManualClock()
    unsent, lines = Unsent(clock), [Line(MOST_UNSENT // 2) for _ in range(3)]
    unsent.note(lines[0])
    unsent.note(lines[1])
    lines[0].taken += 1
    unsent.note(lines[2])

    assert [line.is_cut for line in lines] == [False, True, False]


def test_nobody_is_watched_who_took_everything():
    clock, line = ManualClock(), Line(1000)
    unsent = Unsent(clock)
    unsent.note(line)
    line.taken = 1000
    for _ in range(2 * LOOKS):
        clock.advance(LOOK_S)

    assert not line.is_cut
