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

/** Where lines go, and how the call log learns what operations does not know. */
export interface CallLogOptions {
  readonly log: Log;
  /** Where lines of the audit trail go instead, whose level is then the one that counts for them; `log` when left out. */
  readonly auditLog?: Log | undefined;
  readonly auditOf: (contextValues: ContextValues, error: ConnectError | undefined) => CallAudit;
}

/** What is known of a call beyond its answer. */
export interface CallAudit {
  /** Whether the line belongs to the audit trail. */
  readonly isAudited: boolean;
  /** Who asked, why the credential was refused, what the call was about. */
  readonly fields: object;
}

type CallLevel = "info" | "warn" | "error";

/** Characters of the path that are logged; the rest of a long one is somebody's experiment. */
const pathLengthMax = 256;

/**
 * Returns the function that writes one line per answered call, or `undefined` when the levels of the
 * logs let none through, so that the caller need not even collect what the line would say.
 *
 * Successes and refusals are `info`, a server that cannot serve now (`Unavailable`,
 * `ResourceExhausted`, `DeadlineExceeded`) is `warn`, faults are `error`. No header is ever logged.
 */
export function callLog({ log, auditLog = log, auditOf }: CallLogOptions): ((answer: Answer) => void) | undefined {
  if (!log.isLevelEnabled("error") && !auditLog.isLevelEnabled("error")) return undefined;
  return (answer) => {
    const level = levelOf(answer.error?.code);
    // Building the line costs more than the check: without a trail a healthy call pays at "warn" for the check alone.
    if (!log.isLevelEnabled(level) && !auditLog.isLevelEnabled(level)) return;
    const { isAudited, fields } = auditOf(answer.contextValues, answer.error);
    const to = isAudited ? auditLog : log;
    if (to.isLevelEnabled(level)) to[level]({ ...fieldsOf(answer), ...fields }, "call");
  };
}

function levelOf(code: Code | undefined): CallLevel {
  if (code === undefined) return "info";
  if (isFaultCode(code)) return "error";
  const strained = code === Code.Unavailable || code === Code.ResourceExhausted || code === Code.DeadlineExceeded;
  return strained ? "warn" : "info";
}

function fieldsOf(answer: Answer): object {
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
  };
}
