import { runConformance, timed } from "./suite.ts";

// `npm run suite -- handler-conformance` runs Connect's conformance suite against grpc-js handlers on the gateway's own
// server, without and with the option `messages`. They pass all cases. They do not know a GET request's query parameters,
// which the suite accepts but does not require in a response.

runConformance([
  { server: "own", handlers: "grpc-js", repeatable: [timed], casesWanted: 5286 },
  { server: "own", handlers: "grpc-js with messages", repeatable: [timed], casesWanted: 5286 },
]);
