import { availableParallelism } from "node:os";
import type { FileSuite } from "../../testing/src/suite.ts";

/** The suite of `npm test`. */
export const unitSuite: FileSuite = {
  kind: "files",
  name: "unit",
  about: "what `npm test` runs: every file outside a folder suites/",
  occasion: "test",
  isForMutants: true,
  // Each process compiles and optimizes the sources again, which takes 2 s of CPU time or more. Two more processes than
  // cores keep the cores busy while tests wait.
  workers: Math.min(availableParallelism() + 2, 8),
};

/** The suite of `npm run check`, whose tests do not run the product. */
export const checkSuite: FileSuite = {
  kind: "files",
  name: "check",
  about: "documents, wording, modules and their limits, tools and benchmarks",
  occasion: "run",
  whySeparate: "a mistake in the product does not fail these tests",
};

/** The files of `npm test` whose tests run in all combinations in {@link longSuite}. */
// oxfmt-ignore
export const longRepeats: readonly string[] = [
  "protoport/gateway/test/options/grpc-metadata.test.ts", "protoport/gateway/test/options/ignored-bodies.test.ts",
  "protoport/gateway/test/parsed-body.test.ts", "protoport/gateway/test/paths-as-sent.test.ts",
  "protoport/gateway/test/wire/corpus.test.ts", "protoport/gateway/test/wire/http-body.test.ts",
  "protoport/gateway/test/wire/rest-http.test.ts", "protoport/gateway/test/engine/request-trailers.test.ts",
  "protoport/gateway/test/mcp/requests.test.ts", "protoport/gateway/test/serve/admit-procedure.test.ts",
  "protoport/gateway/test/serve/call-view.test.ts", "protoport/gateway/test/serve/cross-site.test.ts",
  "protoport/gateway/test/serve/endpoints.test.ts", "protoport/gateway/test/serve/forbidden-fields.test.ts",
  "protoport/gateway/test/serve/odd-errors.test.ts", "protoport/gateway/test/serve/odd-headers.test.ts",
  "protoport/gateway/test/serve/reserved-metadata.test.ts", "protoport/gateway/test/serve/stream-call.test.ts",
  "protoport/gateway/test/serve/unary-call.test.ts",
];

/** The suite of tests that need only `npm ci`, and take minutes. */
export const longSuite: FileSuite = {
  kind: "files",
  name: "long",
  about: "what `npm ci` suffices for, and takes too long for `npm test`: processes, PostgreSQL, random inputs, effects",
  occasion: "run",
  whySeparate: "takes minutes",
  isForMutants: true,
  // Tests that `npm test` runs in some of several ways (`rowsFor` and `waysFor`), here in every way.
  repeats: longRepeats,
  workers: 6,
  environment: { TEST_COMBINATIONS: "all" },
};
