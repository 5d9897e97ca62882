/** The log in which verifiers report to operators, such as a pino logger. No line ever contains a token. */
export interface AuthLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
