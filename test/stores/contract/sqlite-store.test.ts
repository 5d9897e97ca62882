import { describeConcurrentJobs } from "../../support/plants/describe-concurrent-jobs.ts";
import { describePlantStore } from "../../support/plants/describe-plant-store.ts";
import { sqlitePauses } from "../../support/plants/job-pauses.ts";
import { openSqlite } from "../../support/plants/open-sqlite.ts";

// SQLite locks the whole file.
describePlantStore(openSqlite, { lacks: ["a locked plant"] });

// test/suites/long/stores/concurrent-jobs.test.ts tests the other jobs.
describeConcurrentJobs(["import", "retention"], openSqlite, sqlitePauses);
