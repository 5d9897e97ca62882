import { Code } from "@connectrpc/connect";
import { type AnsweredRequest, errorCodeOf } from "@plantstore/gateway";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { isFaultCode } from "./fault.ts";
import type { Log } from "./log.ts";
import { requestIdOf } from "./request-id.ts";

/** Options of {@link createCallLog}. */
export interface CallLogOptions {
  readonly log: Log;
  /** The log of the audit trail, whose level then decides about these lines; default `log`. */
  readonly auditLog?: Log | undefined;
  /** The log for the part of the audit trail that is about deletions; default `auditLog`. */
  readonly deletionLog?: Log | undefined;
  /** Returns what is known about a call apart from its answer. */
  readonly auditOf: (answer: AuditedCall) => CallAudit;
  /** Whether requests of which this is true have no line; default none. */
  readonly isSilent?: ((answer: AnsweredRequest) => boolean) | undefined;
}

const callLogOptionNames: OptionNames<CallLogOptions> = {
  log: required,
  auditLog: true,
  deletionLog: true,
  auditOf: required,
  isSilent: true,
};

/** What decides about the audit line of a call. */
export type AuditedCall = Pick<AnsweredRequest, "procedure" | "contextValues" | "error">;

/** What is known about a call apart from its answer. */
export interface CallAudit {
  /** The part of the audit trail that the line belongs to; `undefined` for none. */
  readonly trail: "refusals" | "deletions" | undefined;
  /** The caller, why its credential was refused, what the call was about. */
  readonly fields: object;
}

type CallLevel = "info" | "warn" | "error";

/** The most characters of a path that are logged; nothing is found under a longer path. */
const pathLengthMax = 256;

/**
 * Creates a function that writes one line per answered call, or returns `undefined` when the levels of the logs let no
 * line through, so that the caller need not collect its content.
 *
 * Successes and refusals are `info`, a server that cannot serve right now (`Unavailable`, `ResourceExhausted`,
 * `DeadlineExceeded`) is `warn`, faults are `error`. Headers are never logged.
 *
 * @throws TypeError for options that do not exist
 */
export function createCallLog(options: CallLogOptions): ((answer: AnsweredRequest) => void) | undefined {
  refuseUnknownOptions(options, callLogOptionNames, "createCallLog");
  const { log, auditLog = log, deletionLog = auditLog, auditOf, isSilent } = options;
  const trails = { refusals: auditLog, deletions: deletionLog };
  const isHeard = (level: CallLevel): boolean =>
    log.isLevelEnabled(level) || auditLog.isLevelEnabled(level) || deletionLog.isLevelEnabled(level);
  if (!isHeard("error")) return undefined;
  return (answer) => {
    const level = levelOf(answer.error?.code);
    // Building the line is expensive; the check is all that a successful call costs at "warn".
    if (!isHeard(level) || isSilent?.(answer) === true) return;
    const { trail, fields } = auditOf(answer);
    const to = trail === undefined ? log : trails[trail];
    if (to.isLevelEnabled(level)) to[level]({ ...fieldsOf(answer), ...fields }, "call");
  };
}

function levelOf(code: Code | undefined): CallLevel {
  if (code === undefined) return "info";
  if (isFaultCode(code)) return "error";
  const strained = code === Code.Unavailable || code === Code.ResourceExhausted || code === Code.DeadlineExceeded;
  return strained ? "warn" : "info";
}

function fieldsOf(answer: AnsweredRequest): object {
  return {
    requestId: requestIdOf(answer.contextValues),
    // JSON omits an absent name from the line.
    procedure: answer.procedure,
    protocol: answer.protocol,
    httpMethod: answer.httpMethod,
    path: answer.path.slice(0, pathLengthMax),
    httpStatus: answer.httpStatus,
    code: codeOf(answer),
    errorCode: answer.error && errorCodeOf(answer.error),
    durationMs: Math.round(answer.durationMs * 1000) / 1000,
    peer: answer.peer.address,
  };
}

// What is no RPC, such as a probe, has a status alone unless it is refused.
function codeOf({ error, procedure }: AnsweredRequest): string | undefined {
  if (error !== undefined) return Code[error.code];
  return procedure === undefined ? undefined : "OK";
}
