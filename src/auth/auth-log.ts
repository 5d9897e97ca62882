/** Where verifiers say what operators should know; a pino logger is one. No line ever holds a token. */
export interface AuthLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
