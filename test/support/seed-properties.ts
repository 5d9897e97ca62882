import { configureGlobal } from "fast-check";
import { waitLimitMs } from "./deadline.ts";
import { testSeed } from "./test-seed.ts";

// As many inputs as there is time for: a busy machine tries fewer of them, and fails none.
configureGlobal({ seed: testSeed, interruptAfterTimeLimit: waitLimitMs, markInterruptAsFailure: false });
