import { configureGlobal } from "fast-check";
import { testSeed } from "./test-seed.ts";

configureGlobal({ seed: testSeed });
