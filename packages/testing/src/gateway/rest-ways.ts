import type { HttpVersion } from "../carriers/exchange.ts";
import type { Http2Server } from "./listen-for-tests.ts";

/** A way in which a body over REST comes and goes. */
interface RestWay {
  readonly name: string;
  readonly version: HttpVersion | "fetch";
  readonly http2: Http2Server;
}

/** The transports over REST that have separate code for bodies. */
export const restWays: readonly RestWay[] = [
  { name: "HTTP/1.1", version: "1.1", http2: "own" },
  { name: "HTTP/2", version: "2", http2: "own" },
  { name: "HTTP/2, mounted", version: "2", http2: "mounted" },
  { name: "Fetch", version: "fetch", http2: "own" },
];

/** The rows of a table where the way is the first, and none for the others: for what nobody who carries a body sees. */
export function onFirstWay<Row>(way: Pick<RestWay, "name">, rows: readonly Row[]): readonly Row[] {
  return way.name === restWays[0]?.name ? rows : [];
}
