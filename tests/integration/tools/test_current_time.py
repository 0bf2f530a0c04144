"""The time that an agent tells is its user's."""

from wakeful import Runtime, Settings


async def test_the_zone_of_the_settings_is_the_users() -> None:
    async with Runtime(settings=Settings(timezone="Asia/Tokyo")) as runtime:
        turn = await runtime.wait(await runtime.send("What time is it?"))

    assert turn is not None
    assert "+09:00" in (turn.reply or "")
