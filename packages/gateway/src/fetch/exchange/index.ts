/** Which `Request` and `Response` are one exchange? Loads nothing of node. */
export { FetchExchange } from "./fetch-exchange.ts";
