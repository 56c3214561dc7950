"""1,000 requests of the `openai` package from PyPI against `dculab serve`: none is lost, greedy ones get what
`dculab run` generates, those that break off free their blocks.

Usage: openai_client_test.py PROGRAM SOURCE_DIR. Exits with 77 where pip cannot have the package.
"""

import asyncio
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

PACKAGE = "openai==3.57.0"
REQUESTS, TOKENS, AT_ONCE = 1000, 12, 50
TEMPLATE = "{% for m in messages %}{{ m['content'] | trim }}{% if not loop.last %} {% endif %}{% endfor %}"


def in_environment() -> int:
    """Runs this test again where the package is."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dculab-openai-"))
    try:
        venv.create(folder, with_pip=True)
        install = subprocess.run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], capture_output=True, text=True)
        if install.returncode != 0:
            print(f"skipped: pip cannot install {PACKAGE}: {install.stderr.strip().splitlines()[-1:]}")
            return 77
        return subprocess.run([folder / "bin/python", __file__, *sys.argv[1:], "--here"]).returncode
    finally:
        shutil.rmtree(folder)


async def talk(server, expected, asked):
    import openai

    client = openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=600)
    gate = asyncio.Semaphore(AT_ONCE)

    async def text_of(number, prompt):
        common = {"model": server.model, "max_tokens": TOKENS, "temperature": 0, "stream": number % 2 == 0}
        async with gate:
            if number % 3 == 0:
                answer = await client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **common)
            else:
                answer = await client.completions.create(prompt=prompt, **common)
            if not common["stream"]:
                choice = answer.choices[0]
                assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
                return choice.message.content if number % 3 == 0 else choice.text
            text, reason = "", None
            async for piece in answer:
                choice = piece.choices[0]
                text += (choice.delta.content if number % 3 == 0 else choice.text) or ""
                reason = choice.finish_reason or reason
            assert reason in ("stop", "length"), reason
            return text

    texts = await asyncio.gather(*(text_of(number, prompt) for number, prompt in enumerate(asked)))
    wrong = [number for number, text in enumerate(texts) if text != expected[number]]
    assert not wrong, (wrong[:5], texts[wrong[0]], expected[wrong[0]])

    assert [model.id async for model in client.models.list()] == [server.model]
    for wrong_request, kind in (({"model": "gpt-4"}, openai.NotFoundError), ({"n": 2}, openai.BadRequestError)):
        try:
            await client.completions.create(**({"model": server.model, "prompt": "a"} | wrong_request))
            raise SystemExit(f"{wrong_request} was served")
        except kind as error:
            assert error.body["param"] in ("model", "n"), error.body

    async def leave(number):
        answer = await client.completions.create(model=server.model, prompt=f"Story {number}", max_tokens=900, stream=True, extra_body={"ignore_eos": True})
        async for _ in answer:
            break
        await answer.close()

    await asyncio.gather(*(leave(number) for number in range(30)))
    await client.close()


def main() -> int:
    if "--here" not in sys.argv:
        return in_environment()
    from dculab_server import Server, generated, prompts

    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        model = pathlib.Path(name) / "dculab-tiny"
        shutil.copytree(source / "scenarios/models/dculab-tiny", model)
        (model / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
        asked = prompts(REQUESTS)
        expected = generated(program, str(model), asked, pathlib.Path(name), TOKENS)
        with Server(program, str(model)) as server:
            asyncio.run(talk(server, expected, asked))
            server.wait_until_empty()
            assert server.metric("request_success_total", finished_reason="abort") == 30
            served = server.metric("request_success_total", finished_reason="stop") + server.metric("request_success_total", finished_reason="length")
            assert served == REQUESTS, served
    print(f"{REQUESTS} requests of {PACKAGE}, none lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
