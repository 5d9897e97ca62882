import { runConformance, timed } from "./suite.ts";

// `npm run suite -- conformance` runs Connect's conformance suite against this server. Runs for the gateway's own
// server, for its handler in node's servers, and for createGrpcTransport.

/** While it writes a response, node:https refuses a next request in two TLS records (HPE_PAUSED), with any handler. */
const overNodeHttps = /\/HTTPVersion:1\/.*\bTLS:true\//;

runConformance([
  { server: "own", repeatable: [timed], casesWanted: 5286 },
  { server: "mounted", repeatable: [timed, overNodeHttps], casesWanted: 5286 },
  { server: "none", repeatable: [timed], casesWanted: 1068 },
]);
