import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { ErrorRecordWriter } from "../rest/index.ts";
import type { TrustedProxies } from "../trusted-proxies/index.ts";
import type { Cors } from "./cors.ts";
import type { FaultReporter } from "./faults.ts";
import type { Admit, AdmitRequest, AnsweredRequest } from "./hooks.ts";
import type { MatchTable } from "./match.ts";

/** What all requests of a gateway have in common: what can be asked for, and the hooks of the program. */
export interface Server {
  readonly table: MatchTable;
  readonly admit: Admit | undefined;
  readonly writeErrorRecord: ErrorRecordWriter;
  readonly toError: (thrown: unknown, context: HandlerContext) => ConnectError;
  readonly cors: Cors | undefined;
  readonly onRequest: ((request: AdmitRequest) => void) | undefined;
  readonly onError: ((request: AdmitRequest, error: ConnectError) => void) | undefined;
  readonly onAnswer: ((answer: AnsweredRequest) => void) | undefined;
  readonly report: FaultReporter;
  /** Milliseconds for a unary call whose client sets no deadline; `undefined` for no limit. */
  readonly defaultTimeoutMs: number | undefined;
  /** The proxies whose forwarding header fields are trusted. */
  readonly trustedProxies: TrustedProxies | undefined;
}
