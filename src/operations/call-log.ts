import { Code, type ConnectError, type ContextValues } from "@connectrpc/connect";
import { isFaultCode } from "./fault.ts";
import type { Log } from "./log.ts";
import { requestIdOf } from "./request-id.ts";

/** What is known of a request once it is answered; the gateway tells it. */
export interface Answer {
  /** `/package.Service/Method`, or `undefined` when nothing matched. */
  readonly procedure: string | undefined;
  readonly protocol: string;
  readonly httpMethod: string;
  /** The path without the query, which may hold a secret. */
  readonly path: string;
  /** 0 when the client went away before it could be answered. */
  readonly httpStatus: number;
  /** What was answered instead of a message, or `undefined` when the call succeeded. */
  readonly error: ConnectError | undefined;
  readonly durationMs: number;
  readonly contextValues: ContextValues;
  readonly peer: { readonly address: string };
}

/** How the call log learns what operations does not know. */
export interface CallLogOptions {
  readonly log: Log;
  /** Who asked, why the credential was refused, what the call was about: fields that make the line an audit line. */
  readonly auditOf: (contextValues: ContextValues, error: ConnectError | undefined) => object;
}

type CallLevel = "info" | "warn" | "error";

/** Characters of the path that are logged; the rest of a long one is somebody's experiment. */
const pathLengthMax = 256;

/**
 * Returns the function that writes one line per answered call, or `undefined` when the level of the
 * log lets none through, so that the caller need not even collect what the line would say.
 *
 * Successes and refusals are `info`, a server that cannot serve now (`Unavailable`,
 * `ResourceExhausted`, `DeadlineExceeded`) is `warn`, faults are `error`. No header is ever logged.
 */
export function callLog({ log, auditOf }: CallLogOptions): ((answer: Answer) => void) | undefined {
  if (!log.isLevelEnabled("error")) return undefined;
  return (answer) => {
    const level = levelOf(answer.error?.code);
    // Building the line costs more than the check: at "warn" a healthy call pays for the check alone.
    if (!log.isLevelEnabled(level)) return;
    log[level](fieldsOf(answer, auditOf), "call");
  };
}

function levelOf(code: Code | undefined): CallLevel {
  if (code === undefined) return "info";
  if (isFaultCode(code)) return "error";
  const strained = code === Code.Unavailable || code === Code.ResourceExhausted || code === Code.DeadlineExceeded;
  return strained ? "warn" : "info";
}

function fieldsOf(answer: Answer, auditOf: CallLogOptions["auditOf"]): object {
  return {
    requestId: requestIdOf(answer.contextValues),
    // A name that is absent is left out of the line by JSON.
    procedure: answer.procedure,
    protocol: answer.protocol,
    httpMethod: answer.httpMethod,
    path: answer.path.slice(0, pathLengthMax),
    httpStatus: answer.httpStatus,
    code: answer.error === undefined ? "OK" : Code[answer.error.code],
    durationMs: Math.round(answer.durationMs * 1000) / 1000,
    peer: answer.peer.address,
    ...auditOf(answer.contextValues, answer.error),
  };
}
