import { describe } from "vitest";
import { fileInterleavings } from "../../../support/plants/concurrent-file-jobs.ts";
import { describeConcurrentJobs } from "../../../support/plants/describe-concurrent-jobs.ts";
import { postgresPauses, sqlitePauses } from "../../../support/plants/job-pauses.ts";
import { openSqlite } from "../../../support/plants/open-sqlite.ts";
import { openStoreWith, startPostgresOfFile } from "../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

describe("SQLite", () => describeConcurrentJobs(openSqlite, sqlitePauses, fileInterleavings));

describe("PostgreSQL", () => describeConcurrentJobs((plants) => openStoreWith(server, plants), postgresPauses));
