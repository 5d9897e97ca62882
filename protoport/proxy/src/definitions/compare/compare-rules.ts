import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Usage } from "./usage.ts";

/** Compares the rules that requests must satisfy. */
export interface CompareRules {
  compareFields(old: DescField, field: DescField, usage: Usage): void;
  /** Checks the rules on a new field. */
  checkNewField(field: DescField, usage: Usage): void;
  /** Compares the rules on two messages and on their oneofs. */
  compareMessages(before: DescMessage, now: DescMessage, usage: Usage): void;
}
