"""Which refusals mean that a request is too long, and which only sound like it."""

import pytest

from wakeful.models.refusals import LONG_REQUEST, SENTENCES, Sentence, TooLong, too_long

LONG, SHORT = LONG_REQUEST, LONG_REQUEST - 1


def said_by(sentence: Sentence) -> str:
    return sentence.example.format(asked=9_100, window=8_192)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.who)
def test_every_sentence_of_the_list_is_known_for_what_it_is(sentence: Sentence):
    found = too_long(sentence.status, said_by(sentence), SHORT)

    window = 8_192 if "{window}" in sentence.example else None
    assert found == TooLong(window=window, is_in_bytes=window is None and sentence.status == 413)


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.who)
def test_a_sentence_is_known_inside_the_json_around_it(sentence: Sentence):
    body = f'{{"error": {{"message": "{said_by(sentence)}", "type": "invalid_request_error"}}}}'

    assert too_long(sentence.status, body, SHORT) is not None


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.who)
def test_a_sentence_that_comes_in_the_middle_of_a_stream_has_no_status(sentence: Sentence):
    assert too_long(None, said_by(sentence), SHORT) is not None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, "
              "Requested 5000. Please try again in 8s."),
        (429, "Number of request tokens has exceeded your per-minute rate limit"),
        (400, "Too many tokens, please wait before trying again."),
        (400, "ThrottlingException: Too many tokens per day, please wait before trying again."),
        (429, "too many tokens"),
        (413, "Request too large for model `m` on tokens per minute (TPM): Limit 6000, "
              "Requested 900. Rate limit reached, try again in 5s"),
        (403, "You exceeded your current quota: token limit exceeded"),
        (503, "The engine is overloaded. prompt is too long to be queued"),
        (400, "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens"),
        (400, "max_tokens is too large: 20000. This model supports at most 16384 completion "
              "tokens"),
        (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"),
        (400, "tools.0.name: String should have at most 64 characters"),
        (401, "prompt is too long"),
        (404, "The model `gpt-9` does not exist"),
        (500, ""),
        (None, ""),
    ],
)  # fmt: skip
def test_what_only_sounds_like_it_is_something_else(status: int | None, said: str):
    assert too_long(status, said, LONG * 100) is None


@pytest.mark.parametrize("status", [413, 429])
def test_one_request_above_the_tokens_of_a_whole_minute_is_too_long_whenever_it_is_sent(
    status: int,
):
    said = "Request too large for gpt-4o on tokens per min (TPM): Limit 30,000, Requested 41,000."

    assert too_long(status, said, SHORT) == TooLong(window=30_000)


@pytest.mark.parametrize("said", ["", " \n", "{}", '""'])
def test_a_refusal_without_a_word_counts_after_a_long_request_only(said: str):
    assert too_long(400, said, LONG) == TooLong()
    assert too_long(400, said, SHORT) is None


def test_a_body_that_is_too_large_is_too_long_whatever_is_said():
    assert too_long(413, "<html>nginx</html>", SHORT) == TooLong(is_in_bytes=True)


def test_numbers_are_read_from_fields_beside_the_sentence():
    said = '{"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 4096}'

    assert too_long(400, said, SHORT) == TooLong(window=4_096)


def test_a_number_that_can_be_no_window_is_not_believed():
    said = "This model's maximum context length is 0 tokens."

    assert too_long(400, said, SHORT) == TooLong()
