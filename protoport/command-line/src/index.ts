/** Parses a program's command line, prints its help, and reports its errors. Values are read by setting types. */
export {
  type CommandOf,
  type Flag,
  flagsOf,
  type Operand,
  type ParsedFlags,
  type Program,
  type SettingFlags,
  textOf,
  textsOf,
  UsageError,
} from "./command.ts";
export { formatFlag, formatColumns, type HelpRow, usageOf } from "./help.ts";
export { parseCommand, readFlag, readValue } from "./parse-command.ts";
export { type CommandOutput, runProgram } from "./program.ts";
export { firstStopSignal } from "./stop-signals.ts";
export {
  type CertificateValidity,
  type KeyPair,
  parseCertificates,
  maxPemBytes,
  readKeyPair,
  readRegularFile,
  readRegularFileSync,
  validityProblem,
} from "./files/index.ts";
