"""Base64 leaves a kept line and comes back, however many images the line has."""

import base64

from wakeful.transcript.jsonl.images import folded, found_in, unfolded


def line_of(count: int) -> tuple[str, dict[str, object]]:
    blocks = [
        {
            "type": "image",
            "data": base64.b64encode(f"picture {n}".encode()).decode(),
            "mimeType": "image/png",
        }
        for n in range(count)
    ]
    told = ", ".join(f'{{"type": "image", "data": "{one["data"]}"}}' for one in blocks)
    return f'{{"content": [{told}], "note": "abcd"}}', {"message": {"content": blocks}}


def test_a_line_with_very_many_images_is_folded_in_one_pass_and_comes_back() -> None:
    line, read = line_of(20_000)
    brought = found_in(read)

    short = folded(line, brought)

    assert len(brought) == 20_000
    assert brought[0].data not in short
    assert '"note": "abcd"' in short
    assert unfolded(short, {one.hash: one.data for one in brought}) == line


def test_a_line_that_was_not_folded_stays_as_it_came() -> None:
    line, read = line_of(2)
    brought = found_in(read)
    marked = line.replace("abcd", "wakeful:sha256:")

    assert folded(marked, brought) == marked
    assert unfolded(marked, {one.hash: one.data for one in brought}) == marked
