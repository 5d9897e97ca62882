/** The log for operators, such as a pino logger. No line contains a credential. */
export interface OperatorLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
