import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Usage } from "./usage.ts";

/** Compares the rules that requests must satisfy. */
export interface CompareRules {
  /** Compares two fields' rules. */
  ofFields(old: DescField, field: DescField, usage: Usage): void;
  /** Checks the rules on a field that is new. */
  ofNewField(field: DescField, usage: Usage): void;
  /** Compares the rules on two messages and their oneofs. */
  ofMessages(before: DescMessage, now: DescMessage, usage: Usage): void;
}
