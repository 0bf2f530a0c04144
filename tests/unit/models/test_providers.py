"""What a model's name needs is told at the start, before anything heavy is loaded."""

import subprocess
import sys

import pytest
from pydantic_ai.providers import infer_provider_class

from wakeful.models.catalog import find
from wakeful.models.choosing import choose, refuse_bad_provider, refuse_unusable
from wakeful.models.direct import DirectModel
from wakeful.models.providers import PROVIDERS, ProviderSettings, WireFormat
from wakeful.vocabulary.errors import InvalidInput

KEYED = {"ANTHROPIC_API_KEY": "k"}


@pytest.mark.parametrize("name", [name for name in PROVIDERS if PROVIDERS[name].package])
def test_every_provider_is_one_that_the_library_knows(name: str):
    try:
        infer_provider_class(name)
    except ImportError as missing:
        assert PROVIDERS[name].extra in str(missing)


def test_an_unknown_provider_is_told_with_the_known_ones():
    with pytest.raises(InvalidInput) as refused:
        refuse_unusable("antropic:claude", KEYED)

    assert refused.value.field == "model"
    assert "anthropic, azure" in refused.value.rule
    assert "'antropic'" in refused.value.rule


@pytest.mark.parametrize("name", ["claude", "anthropic:", "", ":x"])
def test_a_name_without_provider_and_model_is_refused(name: str):
    with pytest.raises(InvalidInput):
        refuse_unusable(name, KEYED)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("anthropic:x", "ANTHROPIC_API_KEY"),
        ("openai:x", "OPENAI_API_KEY or OPENAI_BASE_URL"),
        ("google:x", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("vllm:x", "VLLM_BASE_URL"),
    ],
)
def test_a_missing_key_is_told_by_its_variable(name: str, variables: str):
    with pytest.raises(InvalidInput, match=f"needs {variables} in the environment"):
        refuse_unusable(name, {variables.split()[0]: ""})


@pytest.mark.parametrize(
    ("environ", "base_url"),
    [
        ({}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_BASE_URL": "http://10.0.0.7:1/v1"}, "http://10.0.0.7:1/v1"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": ":8080"}, "http://127.0.0.1:8080/v1"),
        ({"OLLAMA_HOST": "[::]:8080"}, "http://127.0.0.1:8080/v1"),
        ({"OLLAMA_HOST": "[::1]"}, "http://[::1]:11434/v1"),
        ({"OLLAMA_HOST": "https://gpu.example:443/"}, "https://gpu.example:443/v1"),
        ({"OLLAMA_HOST": "gpu", "OLLAMA_BASE_URL": "http://b/v1"}, "http://b/v1"),
    ],
)
def test_ollama_needs_nothing_where_it_usually_is(environ: dict[str, str], base_url: str):
    assert choose("ollama:x", environ).base_url == base_url


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("openrouter/anthropic/claude-opus-5", "openrouter:anthropic/claude-opus-5"),
        ("ollama/llama3.1:8b", "ollama:llama3.1:8b"),
        ("llama3.1:8b", "ollama:llama3.1:8b"),
        ("OpenAI:gpt-5.6", "openai:gpt-5.6"),
        ("gpt-5.6", "openai:gpt-5.6"),
        ("claude-opus-5", "anthropic:claude-opus-5"),
        ("gemini:gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("together_ai/meta-llama/Llama-3", "together:meta-llama/Llama-3"),
        ("lm_studio:qwen", "lmstudio:qwen"),
        ("x-ai/grok-4", "xai:grok-4"),
        ("azure_openai:gpt-4o", "azure:gpt-4o"),
    ],
)
def test_a_name_as_other_tools_write_it_is_refused_with_what_to_write(name: str, meant: str):
    with pytest.raises(InvalidInput) as refused:
        refuse_unusable(name, KEYED)

    assert refused.value.rule.endswith(f"; write '{meant}'")


def test_a_provider_that_nobody_knows_is_refused_with_where_to_describe_it():
    with pytest.raises(InvalidInput, match="is described under 'providers', with kind, base_url"):
        refuse_unusable("perplexity:org/sonar", KEYED)


@pytest.mark.parametrize("name", ["ollama", "vllm", "lmstudio", "litellm"])
def test_a_server_of_ones_own_is_found_without_its_path(name: str):
    variable = PROVIDERS[name].address
    own = {name: ProviderSettings(base_url="http://gpu:1/")}

    found = [
        choose(f"{name}:x", {variable: "http://gpu:1"}).base_url,
        choose(f"{name}:x", {}, own).base_url,
        choose(f"{name}:x", {variable: "http://gpu:1/llm"}).base_url,
    ]

    assert found == ["http://gpu:1/v1", "http://gpu:1/v1", "http://gpu:1/llm"]


def test_an_address_that_goes_too_far_is_refused_with_where_it_must_end():
    with pytest.raises(InvalidInput, match=r"OPENAI_BASE_URL: it must end before '/chat/compl"):
        refuse_unusable("openai-chat:x", {"OPENAI_BASE_URL": "http://gpu:1/v1/chat/completions"})


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("together:x", "TOGETHERAI_API_KEY"),
        ("moonshotai:x", "MOONSHOT_API_KEY"),
        ("huggingface:x", "HUGGINGFACE_API_KEY"),
        ("fireworks:x", "FIREWORKS_AI_API_KEY"),
    ],
)
def test_a_key_is_found_by_the_variable_of_another_tool(name: str, variable: str):
    assert choose(name, {variable: "k"}).key == "k"


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"X Team": "a"}, "providers.corp.headers.X Team"),
        ({"X-Team": "canary\r\nHost: b"}, "providers.corp.headers.X-Team"),
        ({"Host": "b"}, "providers.corp.headers.Host"),
        ({"transfer-encoding": "chunked"}, "providers.corp.headers.transfer-encoding"),
    ],
)
def test_a_header_that_would_change_a_request_is_refused(headers: dict[str, str], field: str):
    given = ProviderSettings(kind=WireFormat.OPENAI_CHAT, base_url="http://b/v1", headers=headers)
    with pytest.raises(InvalidInput) as refused:
        refuse_bad_provider("corp", given)

    assert refused.value.field == field
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "key", ["sk-canary\r", "sk-canary\n", " sk-canary", "   ", "sk-canary\u2013"]
)
def test_a_key_that_no_request_can_carry_is_told_by_its_variable_alone(key: str):
    with pytest.raises(InvalidInput, match="cannot use ANTHROPIC_API_KEY") as refused:
        refuse_unusable("anthropic:x", {"ANTHROPIC_API_KEY": key})

    assert "canary" not in str(refused.value)


def test_a_missing_package_is_told_with_what_to_install():
    with pytest.raises(InvalidInput, match=r"pip install 'pydantic-ai-slim\[cohere\]'"):
        refuse_unusable("cohere:command", {"CO_API_KEY": "k"})


def test_our_own_extras_are_told_by_our_own_name():
    installs = {name: PROVIDERS[name].install for name in ("anthropic", "google", "azure", "xai")}

    assert installs == {
        "anthropic": "wakeful[providers]",
        "google": "wakeful[providers]",
        "azure": "wakeful[providers]",
        "xai": "pydantic-ai-slim[xai]",
    }


def test_who_is_spoken_to_directly_needs_no_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [])  # nothing more can be found
    for package in ("pydantic_ai", "google.genai"):
        monkeypatch.delitem(sys.modules, package, raising=False)

    assert choose("anthropic:x", KEYED).kind is WireFormat.ANTHROPIC
    with pytest.raises(InvalidInput, match=r"pip install 'wakeful\[providers\]'"):
        choose("google:x", {"GOOGLE_API_KEY": "k"})


def test_finding_a_model_loads_no_library(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    program = (
        "import sys, wakeful; wakeful.Runtime(agents=[wakeful.Agent(model='anthropic:claude')]); "
        "from wakeful.models.catalog import find; find('anthropic:claude'); "
        "print({'pydantic_ai', 'anthropic', 'openai'} & set(sys.modules))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "set()"
    assert isinstance(find("anthropic:claude"), DirectModel)


def test_what_goes_along_in_headers_must_be_sendable():
    environ = {"OPENAI_API_KEY": "k", "OPENAI_ORG_ID": "org\r\nx: y"}

    with pytest.raises(InvalidInput, match="cannot use OPENAI_ORG_ID"):
        refuse_unusable("openai:x", environ)


def test_a_proxy_that_cannot_be_used_is_told_at_the_start_without_its_password():
    environ = {**KEYED, "HTTPS_PROXY": "socks5://me:s3cret@p:1080"}

    with pytest.raises(InvalidInput, match="cannot use HTTPS_PROXY: it must name") as refused:
        refuse_unusable("anthropic:x", environ)

    assert "s3cret" not in str(refused.value)
    refuse_unusable("anthropic:x", {**environ, "NO_PROXY": "api.anthropic.com"})
