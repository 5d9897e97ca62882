import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { openSqlite } from "../../support/plants/open-sqlite.ts";

// SQLite locks the whole file.
describePlantStore(openSqlite, { lacks: ["a locked plant"] });
