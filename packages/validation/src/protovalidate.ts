/** The protovalidate parts that this module uses. The package is loaded only by `openValidation`. */
export type Protovalidate = Pick<typeof import("@bufbuild/protovalidate"), "createValidator" | "violationsToProto"> &
  RuleSchemas;

/** The `buf/validate/validate.proto` extensions that contain rules, and one rule's schema. */
export type RuleSchemas = Pick<
  typeof import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  "field" | "FieldRulesSchema" | "message" | "MessageRulesSchema" | "oneof" | "predefined"
>;
