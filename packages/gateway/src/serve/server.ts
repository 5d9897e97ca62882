import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Limits } from "../exchange/index.ts";
import type { TrustedProxies } from "../trusted-proxies/index.ts";
import type { FaultReporter } from "./faults.ts";
import type { Admit, AdmitRequest, AnsweredRequest } from "./hooks.ts";
import type { Routes } from "./routes.ts";

/** What all requests of a gateway have in common: what they can ask for, and the hooks of the program. */
export interface Server {
  /** A proxy replaces them as a whole when it learns of other services. Requests keep the target that they have found. */
  routes: Routes;
  readonly admit: Admit | undefined;
  readonly toError: (thrown: unknown, context: HandlerContext) => ConnectError;
  readonly onRequest: ((request: AdmitRequest) => void) | undefined;
  readonly onError: ((request: AdmitRequest, error: ConnectError) => void) | undefined;
  readonly onAnswer: ((answer: AnsweredRequest) => void) | undefined;
  readonly report: FaultReporter;
  readonly limits: Limits;
  /** Milliseconds for a unary call whose client sets no deadline; `undefined` for no limit. */
  readonly defaultTimeoutMs: number | undefined;
  /** The proxies whose forwarding header fields are trusted. */
  readonly trustedProxies: TrustedProxies | undefined;
}
