import { describePlantStore, openSqlite } from "../../support/plants/index.ts";

// SQLite locks the whole file.
describePlantStore(openSqlite, { lacks: ["a locked plant"] });
