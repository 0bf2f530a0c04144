"""What a runtime works with, once it is built."""

from collections.abc import Mapping
from dataclasses import dataclass

from wakeful.access.credentials import Credentials, Made
from wakeful.assembly.plan import Listener, Service
from wakeful.bus.bus import Bus
from wakeful.intake.compactions import Compactions
from wakeful.intake.deletion import Deletion
from wakeful.intake.intake import Intake
from wakeful.intake.sessions import SessionActs
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.store.database import Store
from wakeful.views.lanes import LaneView
from wakeful.views.transcripts import TranscriptView
from wakeful.views.turns import TurnView
from wakeful.vocabulary.ids import Ids


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """The rooms of one runtime that its verbs use, and the services that must run."""

    store: Store
    bus: Bus
    ids: Ids
    credentials: Credentials
    intake: Intake
    compactions: Compactions
    acts: SessionActs
    deletion: Deletion
    dispatcher: Dispatcher
    turns: TurnView
    transcripts: TranscriptView
    lanes: LaneView
    services: Mapping[str, Service]
    http: Listener | None = None
    operator: Made | None = None  # the token in the home folder, if there is a door
