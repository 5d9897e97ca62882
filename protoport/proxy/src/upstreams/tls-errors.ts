/** Thrown for a certificate or a key in an upstream's `tls` that cannot be used. */
export class TlsFilesError extends Error {}

const trust = "set tls.ca (--upstream-tls-ca) to the certificate of its authority";
const rejectedText = "the server rejected the client certificate of tls.cert (--upstream-tls-cert)";
const plaintext = "the server does not use TLS: use an http: address, or dns: without tls";

/** Advice that is added to an error's message, by node's error code. */
const advice: ReadonlyMap<string, string> = new Map([
  ["ERR_TLS_CERT_ALTNAME_INVALID", "set tls.servername (--upstream-tls-servername) to a name of the certificate"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", trust],
  ["SELF_SIGNED_CERT_IN_CHAIN", trust],
  ["UNABLE_TO_GET_ISSUER_CERT", trust],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", trust],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", trust],
]);

/** Messages that replace OpenSSL's messages, by the end of node's error code. */
const messages: readonly (readonly [code: string, message: string])[] = [
  ["ALERT_CERTIFICATE_REQUIRED", missingClientCertificate("requires")],
  ["ALERT_BAD_CERTIFICATE", rejectedText],
  ["ALERT_CERTIFICATE_EXPIRED", rejectedText],
  ["ALERT_CERTIFICATE_UNKNOWN", rejectedText],
  ["ALERT_UNKNOWN_CA", rejectedText],
  ["WRONG_VERSION_NUMBER", plaintext],
  ["PACKET_LENGTH_TOO_LONG", plaintext],
];

/** Returns the message for a server that requires, or may require, a client certificate. */
export function missingClientCertificate(verb: "requires" | "may require"): string {
  return `the server ${verb} a client certificate: set tls.cert and tls.key (--upstream-tls-cert, --upstream-tls-key)`;
}

/** Returns a connection error with a message that names the option to change, if TLS has failed. */
export function explainTlsError(error: Error): Error {
  const code = "code" in error ? String(error.code) : "";
  const [, replaced] = messages.find(([end]) => code.startsWith("ERR_SSL_") && code.endsWith(end)) ?? [];
  if (replaced !== undefined) return new Error(replaced, { cause: error });
  const hint = advice.get(code);
  return hint === undefined ? error : new Error(`${error.message}; ${hint}`, { cause: error });
}
