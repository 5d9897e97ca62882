import type { HttpVersion } from "../http/exchange.ts";
import type { Http2Server } from "./listen-for-tests.ts";

/** A transport over REST with separate code for bodies. */
type RestWay = { readonly name: string; readonly version: HttpVersion | "fetch"; readonly http2: Http2Server };

export const restWays: readonly RestWay[] = [
  { name: "HTTP/1.1", version: "1.1", http2: "listening" },
  { name: "HTTP/2", version: "2", http2: "listening" },
  { name: "HTTP/2, mounted", version: "2", http2: "mounted" },
  { name: "Fetch", version: "fetch", http2: "listening" },
];

/** Returns the test cases only for the first transport, for features that do not depend on the transport. */
export const onFirstWay = <Row>(way: Pick<RestWay, "name">, rows: readonly Row[]): readonly Row[] =>
  way.name === restWays[0]?.name ? rows : [];
