import { StoreOpenError } from "../../store-open-error.ts";

/** The parts of a URL of PostgreSQL, decoded. A part that is missing is empty. */
export interface UrlParts {
  readonly user: string;
  readonly password: string;
  readonly hosts: readonly HostPart[];
  readonly database: string;
  /** The parameters by name; if one is repeated, its last value. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** A host and its port, which may be empty. */
export interface HostPart {
  readonly host: string;
  readonly port: string;
}

// postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS:
//   postgresql://[userspec@][hostspec][/dbname][?paramspec]
//   userspec: user[:password]    hostspec: [host][:port][,...]    paramspec: name=value[&...]
// The name of a database with a bare @ or / is refused: it would be the rest of a password that is not encoded.
const form = /^postgres(?:ql)?:\/\/(?:([^/@:]*)(?::([^/@]*))?@)?([^/?@]*)(?:\/([^/?@]*))?(?:\?(.*))?$/s;

// An IPv6 address is in brackets, which are not part of it.
const hostForm = /^(?:\[([^[\]]+)\]|([^[\]:]*))(?::(.*))?$/s;

/**
 * Takes a URL apart as libpq does. Such URLs differ from others: there may be several hosts, each with a port, or a
 * user without a host; and `+` does not mean a space.
 *
 * @throws StoreOpenError, which shows nothing of the URL
 */
export function parseUrl(text: string): UrlParts {
  const [matched, user = "", password = "", hosts = "", database = "", query = ""] = form.exec(text) ?? [];
  if (matched === undefined) throw notOfTheForm();
  return {
    user: decode(user),
    password: decode(password),
    hosts: hosts.split(",").map(parseHost),
    database: decode(database),
    parameters: new Map(query.split("&").filter(Boolean).map(parseParameter)),
  };
}

function notOfTheForm(): StoreOpenError {
  return new StoreOpenError("the database URL must be postgres://user:password@host:port/database");
}

function parseHost(text: string): HostPart {
  const [matched, inBrackets, name = "", port = ""] = hostForm.exec(text) ?? [];
  if (matched === undefined) throw notOfTheForm();
  return { host: decode(inBrackets ?? name), port: decode(port) };
}

function parseParameter(text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals <= 0) throw new StoreOpenError("in the database URL, each parameter must be name=value");
  return [decode(text.slice(0, equals)), decode(text.slice(equals + 1))];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (fault) {
    throw new StoreOpenError("the database URL has a bad percent escape", { cause: fault });
  }
}
