import { Code, ConnectError } from "@connectrpc/connect";
import { type NamedOption, type ProblemName, problems } from "@plantstore/http";

/** How an error differs from its entry in {@link problems}, and its cause. */
export interface ProblemDetails {
  /** Replaces the entry's code. The HTTP status is then this code's standard status. */
  readonly code?: Code;
  /** Replaces the entry's HTTP status on REST. */
  readonly httpStatus?: number;
  /** What was thrown. Never sent. */
  readonly cause?: unknown;
  /** The option that accepts the refused request; see {@link withOption}. */
  readonly option?: NamedOption | undefined;
}

/** Creates an error for clients, who see its code and message but not its identifier. */
export function problem(name: ProblemName, message: string, more: ProblemDetails = {}): ConnectError {
  const { code = Code[problems[name].code], httpStatus, cause, option } = more;
  const error = Object.assign(new ConnectError(message, code, undefined, undefined, cause), { errorCode: name });
  if (httpStatus !== undefined) customStatuses.set(error, httpStatus);
  if (option !== undefined) namedOptions.set(error, option);
  return error;
}

/** The HTTP statuses passed to {@link problem}. Not the errors' properties, because programs log those. */
const customStatuses = new WeakMap<ConnectError, number>();

/**
 * Returns an error's HTTP status on REST: the one passed to {@link problem}, or its entry's.
 *
 * @returns `undefined` if the error has its code's standard status, because its code differs from its entry's, or there
 * is no entry
 */
export function problemStatusOf(error: ConnectError): number | undefined {
  const custom = customStatuses.get(error);
  if (custom !== undefined) return custom;
  const { code, httpStatus } = entries.get(errorCodeOf(error) ?? "") ?? {};
  return code !== undefined && error.code === Code[code] ? httpStatus : undefined;
}

/** The entries by identifier. An application's identifiers have no entry. */
const entries: ReadonlyMap<string, Entry> = new Map(Object.entries(problems));

interface Entry {
  /** A member of {@link Code}. */
  readonly code?: keyof typeof Code;
  readonly httpStatus?: number;
}

/** Copies an error with another message. */
export function withMessage(error: ConnectError, message: string): ConnectError {
  const { code, metadata, details, cause } = error;
  const copy = Object.assign(new ConnectError(message, code, metadata, [], cause), {
    details,
    errorCode: errorCodeOf(error),
  });
  const custom = customStatuses.get(error);
  if (custom !== undefined) customStatuses.set(copy, custom);
  const option = optionOf(error);
  if (option !== undefined) namedOptions.set(copy, option);
  return copy;
}

/**
 * Returns an error's identifier, such as `ERR_NO_ROUTE`: the gateway's, or the `errorCode` that a program has set on
 * its own error, or `undefined` if there is none.
 */
export function errorCodeOf(error: ConnectError): string | undefined {
  return "errorCode" in error && typeof error.errorCode === "string" ? error.errorCode : undefined;
}

/**
 * Returns the options, such as `lenient` or `limits.urlBytes`, with which the server accepts what an error refuses, or
 * `undefined` if there are none.
 */
export function optionOf(error: ConnectError): NamedOption | undefined {
  return namedOptions.get(error);
}

/** The options passed to {@link problem}. */
const namedOptions = new WeakMap<ConnectError, NamedOption>();

/** The names that messages show for options. An option that is not a member is not named. */
export type OptionLabels = Readonly<Partial<Record<NamedOption, string | undefined>>>;

/**
 * Returns an error whose message names the option that accepts what the error refuses, if there is one.
 *
 * @param names - the names to show. By default, the options' own names
 */
export function withOption(error: ConnectError, names?: OptionLabels): ConnectError {
  const option = optionOf(error);
  const shown = option === undefined || names === undefined ? option : names[option];
  if (shown === undefined) return error;
  return withMessage(error, `${error.rawMessage}; to accept it, set the server option ${shown}`);
}
