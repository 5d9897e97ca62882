/** A certificate with its key, both as PEM. */
interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The certificate that a server in a TLS scenario uses, or `undefined` without TLS. */
export const certificate: Certificate | undefined = readCertificate(process.env);

function readCertificate({ BENCH_CERT: cert, BENCH_KEY: key }: NodeJS.ProcessEnv): Certificate | undefined {
  return cert === undefined || key === undefined ? undefined : { cert, key };
}
