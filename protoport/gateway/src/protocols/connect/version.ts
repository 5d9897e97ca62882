import type { ConnectError } from "@connectrpc/connect";
import type { Exchange } from "../../http/index.ts";
import { problem } from "../../protobuf/index.ts";
import type { Rpc } from "../rpc.ts";

const option = "requireConnectProtocolHeader";

/** Returns the error for a wrong or missing protocol version, if the RPC's options require a version. */
export function versionProblem(
  exchange: Exchange,
  { options }: Rpc,
  query: URLSearchParams | undefined,
): ConnectError | undefined {
  if (!options.requireConnectProtocolHeader) return undefined;
  if (query !== undefined) {
    if (query.get("connect") === "v1") return undefined;
    return problem("ERR_PROTOCOL", 'query parameter "connect" must be "v1"', { option });
  }
  if (exchange.get("connect-protocol-version") === "1") return undefined;
  return problem("ERR_PROTOCOL", 'the header Connect-Protocol-Version must be "1"', { option });
}
