import type { ConnectionOptions, PeerCertificate } from "node:tls";
import { StoreOpenError } from "../../contract/store-open-error.ts";
import type { PemFiles, PemPaths } from "./certificate-files.ts";
import { type Parameters, readWord } from "./parse-url.ts";

/** The TLS options for a connection attempt. `false` for cleartext. */
export type Tls = false | ConnectionOptions;

const sslModes = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;
/** How a connection uses TLS, as in libpq. */
export type SslMode = (typeof sslModes)[number];

/** The TLS options for PEM files, and the parameters that name the files. */
const fileParameters = [
  ["ca", "sslrootcert"],
  ["cert", "sslcert"],
  ["key", "sslkey"],
] as const;

/**
 * Reads `sslmode`, `ssl`, `sslrootcert`, `sslcert` and `sslkey`. With a certificate, `sslmode` defaults to `require`,
 * so that the password is not sent in cleartext, and with `sslrootcert=system` to `verify-full`, as in libpq.
 *
 * @throws StoreOpenError for unknown values and for contradictory settings
 */
export function readTlsSettings(parameters: Parameters): { readonly mode: SslMode; readonly paths: PemPaths } {
  const sslMode = readWord(parameters, "sslmode", sslModes);
  const ssl = readWord(parameters, "ssl", ["true"]);
  if (ssl !== undefined && (sslMode === "disable" || sslMode === "prefer"))
    throw new StoreOpenError(`ssl=true in the database URL contradicts sslmode=${sslMode}`);
  const paths = new Map<keyof PemFiles, string>();
  for (const [option, name] of fileParameters) {
    const path = parameters.get(name);
    if (path === "") throw new StoreOpenError(`${name} in the database URL must be the path of a file in PEM, got ""`);
    if (path !== undefined) paths.set(option, path);
  }
  if (paths.has("cert") !== paths.has("key"))
    throw new StoreOpenError("sslcert and sslkey in the database URL must be set together");
  const trustsSystem = paths.get("ca") === "system";
  const byDefault = trustsSystem ? "verify-full" : paths.size > 0 ? "require" : "prefer";
  const mode = sslMode ?? (ssl === undefined ? byDefault : "require");
  if (trustsSystem && mode !== "verify-full") {
    throw new StoreOpenError(
      `sslrootcert=system in the database URL requires sslmode=verify-full, got ${sslMode ?? "ssl=true"}`,
    );
  }
  // Without a file, Node.js trusts its bundled authorities. NODE_USE_SYSTEM_CA=1 adds the system's authorities.
  if (trustsSystem) paths.delete("ca");
  return { mode, paths };
}

/** The TLS options for connecting to a host, in order (postgresql.org/docs/current/libpq-ssl.html, table 34.1). */
export function tlsAttemptsOf(host: string, mode: SslMode, files: PemFiles): readonly Tls[] {
  // Servers do not offer TLS on Unix sockets.
  if (host.startsWith("/")) return [false];
  const unverified = { ...files, rejectUnauthorized: false };
  const withAuthority = { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };
  switch (mode) {
    case "disable":
      return [false];
    case "prefer":
      return [unverified, false];
    case "require":
      // If there is a root certificate, the signature is checked, as in libpq.
      return [files.ca === undefined ? unverified : withAuthority];
    case "verify-ca":
      return [withAuthority];
    case "verify-full":
      return [{ ...files, rejectUnauthorized: true, checkServerIdentity: (_, peer) => checkIdentity(host, peer) }];
  }
}

// Passes the host explicitly. node-postgres does not pass the host to TLS, and TLS would expect "localhost". Loads the
// module on demand, because not all settings use TLS.
function checkIdentity(host: string, peer: PeerCertificate): Error | undefined {
  return process.getBuiltinModule("node:tls").checkServerIdentity(host, peer);
}
