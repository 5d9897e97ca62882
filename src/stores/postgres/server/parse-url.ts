import { StoreOpenError } from "../../contract/store-open-error.ts";

// Matches a connection URI (postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS). A database name with
// an unencoded @ or / is refused, because @ and / are probably a part of an unencoded password.
const form = /^postgres(?:ql)?:\/\/(?:([^/@:]*)(?::([^/@]*))?@)?([^/?@]*)(?:\/([^/?@]*))?(?:\?(.*))?$/s;

// Captures an IPv6 address without the brackets. A comma separates hosts, which readServerUrl refuses.
const hostForm = /^(?:\[([^[\]]+)\]|([^[\]:]*|[^[\]]*,.*))(?::(\d*))?$/s;

/** A database URL's parameters, by name. */
export type Parameters = ReadonlyMap<string, string>;

/**
 * Parses a URL as libpq does, and returns the decoded parameters. The parts before the `?` become `user`, `password`,
 * `host`, `port` and `dbname`, which are empty if missing. Parameters after the `?` take precedence. A `+` is not
 * decoded to a space. Refuses a repeated parameter, a `#`, and white space at the end, which are probably mistakes.
 *
 * @throws StoreOpenError with a message that contains no part of the URL
 */
export function parseUrl(text: string): Parameters {
  const [matched, user = "", password = "", address = "", database = "", query = ""] = form.exec(text) ?? [];
  const host = hostForm.exec(address);
  if (matched === undefined || host === null || /#|\s$/.test(text)) {
    throw new StoreOpenError(
      "the database URL must be postgres://user:password@host:port/database, with %40 for @, %2F for / and %23 for # in a password, and without a space at the end",
    );
  }
  const given = query.split("&").filter(Boolean).map(parseParameter);
  const repeated = given.find(([name], i) => given.findIndex(([other]) => other === name) < i);
  if (repeated !== undefined) throw new StoreOpenError(`the database URL sets ${repeated[0]} twice`);
  return new Map([
    ["user", decode(user)],
    ["password", decode(password)],
    ["host", decode(host[1] ?? host[2] ?? "")],
    ["port", host[3] ?? ""],
    ["dbname", decode(database)],
    ...given,
  ]);
}

function parseParameter(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals <= 0) throw new StoreOpenError("each parameter in the database URL must be name=value");
  return [decode(text.slice(0, equals)), decode(text.slice(equals + 1))];
}

function decode(text: string): string {
  // A zero byte would end a parameter in the start-up message early, and begin another parameter.
  if (text.includes("\0") || text.includes("%00")) throw new StoreOpenError("the database URL must not contain %00");
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    throw new StoreOpenError("the database URL has an invalid percent escape", { cause: fault });
  }
}

/** Returns a parameter's value from a fixed set, if any. @throws StoreOpenError with the accepted values */
export function readWord<Word extends string>(
  parameters: Parameters,
  name: string,
  words: readonly Word[],
): Word | undefined {
  const text = parameters.get(name);
  const word = words.find((each) => each === text);
  if (word !== undefined || text === undefined) return word;
  const accepted = words.length === 1 ? words.join() : `one of ${words.join(", ")}`;
  throw new StoreOpenError(`${name} in the database URL must be ${accepted}, got ${JSON.stringify(text)}`);
}
