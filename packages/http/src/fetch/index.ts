/** Exchanges that consist of a Fetch `Request` and `Response`. Loads no node modules. */
export { FetchExchange } from "./fetch-exchange.ts";
