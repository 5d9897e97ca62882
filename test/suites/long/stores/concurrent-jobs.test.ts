import { describe } from "vitest";
import { describeConcurrentJobs, type Job } from "../../../support/plants/describe-concurrent-jobs.ts";
import { postgresPauses, sqlitePauses } from "../../../support/plants/job-pauses.ts";
import { openSqlite } from "../../../support/plants/open-sqlite.ts";
import { openStoreWith, startPostgresOfFile } from "../../../support/plants/postgres-of-file.ts";

const server = await startPostgresOfFile();

const jobs: readonly Job[] = [
  "import",
  "import --restore",
  "export",
  "retention",
  "deletions",
  "move",
  "migrate",
  "check",
];

describe("SQLite", () =>
  describeConcurrentJobs([...jobs, "a large import", "backup", "restore"], openSqlite, sqlitePauses));

describe("PostgreSQL", () => describeConcurrentJobs(jobs, (plants) => openStoreWith(server, plants), postgresPauses));
