import { describe } from "vitest";
// oxfmt-ignore
import { describeConcurrentJobs, fileInterleavings, openSqlite, openStoreWith, postgresPauses, sqlitePauses,
  startPostgresOfFile } from "../../../support/plants/index.ts";

const server = await startPostgresOfFile();

describe("SQLite", () => describeConcurrentJobs(openSqlite, sqlitePauses, fileInterleavings));

describe("PostgreSQL", () => describeConcurrentJobs((plants) => openStoreWith(server, plants), postgresPauses));
