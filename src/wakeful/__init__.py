"""An always-on agent runtime: every cause of a turn is a stimulus in one durable ledger."""
