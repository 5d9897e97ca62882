import { runConformance, timed } from "./suite.ts";

// `npm run suite -- handler-conformance`: runs Connect's conformance suite against grpc-js handlers on the gateway's
// own server. They pass all cases. Only the query parameters of a GET request, which the suite accepts but does not
// require in a response, are unknown to them.

runConformance([{ server: "own", handlers: "grpc-js", repeatable: [timed], casesWanted: 5286 }]);
