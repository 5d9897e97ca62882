import type { ViteUserConfig } from "vitest/config";
import { createVitestConfig } from "./protoport/testing/src/vitest-config.ts";
import { suites } from "./test/suites/suites.ts";

const config: ViteUserConfig = createVitestConfig(suites);

export default config;
