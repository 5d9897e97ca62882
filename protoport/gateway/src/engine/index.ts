/** HTTP/1.1 and HTTP/2 on plain sockets, several times as fast as node:http2 and stricter than node:http. */
export { createHttpEngine } from "./create-http-engine.ts";
