/** The protovalidate exports that this module uses. Only `openValidation` loads the package. */
export type Protovalidate = Pick<typeof import("@bufbuild/protovalidate"), "createValidator" | "violationsToProto"> &
  RuleSchemas;

/** The extensions and messages in `buf/validate/validate.proto` that contain rules. */
export type RuleSchemas = Pick<
  typeof import("@bufbuild/protovalidate/gen/buf/validate/validate_pb.js"),
  "field" | "FieldRulesSchema" | "message" | "MessageRulesSchema" | "oneof" | "predefined"
>;
