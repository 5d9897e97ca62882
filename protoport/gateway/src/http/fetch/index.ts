/** Exchanges that consist of a Fetch `Request` and `Response`. The module loads no node modules. */
export { FetchExchange } from "./fetch-exchange.ts";
