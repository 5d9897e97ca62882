/** Where verifiers report to operators; a pino logger fits. No line ever contains a token. */
export interface AuthLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
