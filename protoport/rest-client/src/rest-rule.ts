import type { DescFile, DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type BoundFields, memoize } from "@protoport/gateway/messages";
import {
  anyMethod,
  bindBody,
  compilePathVariables,
  createHttpRuleFinder,
  type FieldPath,
  type HttpPattern,
  isMultiSegment,
  parsePathTemplate,
  type PathTemplate,
  resolveProtoPath,
  RouteTable,
  RuleProblem,
  selectorOf,
  type TemplateVariable,
  toHttpPatterns,
} from "@protoport/gateway/rest";

/** A variable in a path template, with the resolved field path. */
export interface RuleVariable extends TemplateVariable {
  readonly name: string;
  readonly path: FieldPath;
  readonly isMultiSegment: boolean;
}

/** A binding of an RPC, compiled for a client. */
export interface RestClientRule {
  readonly method: DescMethod;
  readonly pattern: HttpPattern;
  /** The HTTP method that is sent. The pattern may allow any method. */
  readonly httpMethod: string;
  readonly template: PathTemplate;
  readonly variables: readonly RuleVariable[];
  /** The fields in the path or the body. All other fields are in the query. */
  readonly boundByPathOrBody: BoundFields;
  /** The rules of all RPCs in the proto file, for matching a path as a server does. */
  readonly routes: RouteTable<HttpPattern>;
}

/** The patterns of all RPCs in a proto file. */
interface FileRoutes {
  /** The patterns of each RPC, by selector. */
  readonly patterns: ReadonlyMap<string, readonly HttpPattern[]>;
  readonly table: RouteTable<HttpPattern>;
}

const findRule = createHttpRuleFinder([], [], false);

/**
 * Returns the bindings in an RPC's annotation, the main rule first. Empty if the RPC has no annotation.
 *
 * @throws ConnectError `Internal` for an invalid annotation
 */
export function compileRestRules(method: DescMethod): readonly RestClientRule[] {
  const routes = fileRoutesOf(method.parent.file);
  try {
    const patterns = routes.patterns.get(selectorOf(method)) ?? httpPatternsOf(method);
    const { table } = routes;
    return patterns.map((pattern) => compileRule(method, pattern, table));
  } catch (error) {
    if (!(error instanceof RuleProblem)) throw error;
    throw new ConnectError(`the HTTP rule of ${selectorOf(method)} is not valid: ${error.message}`, Code.Internal);
  }
}

function httpPatternsOf(method: DescMethod): readonly HttpPattern[] {
  const rule = findRule(method);
  return rule === undefined ? [] : toHttpPatterns(rule);
}

const fileRoutesOf = memoize(({ services }: DescFile): FileRoutes => {
  const patterns = new Map<string, readonly HttpPattern[]>();
  const table = new RouteTable<HttpPattern>();
  for (const method of services.flatMap((service) => service.methods)) {
    try {
      const methodPatterns = httpPatternsOf(method);
      patterns.set(selectorOf(method), methodPatterns);
      for (const pattern of methodPatterns)
        table.add(pattern.httpMethod, parsePathTemplate(pattern.pathTemplate), pattern);
    } catch (error) {
      // Ignores problems with a rule, because a call to the RPC reports the problem.
      if (!(error instanceof RuleProblem)) throw error;
    }
  }
  return { patterns, table };
});

// HTTP methods that fetch forbids (Fetch §2.2.1).
const forbiddenMethods: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

function compileRule(method: DescMethod, pattern: HttpPattern, routes: RouteTable<HttpPattern>): RestClientRule {
  const { input } = method;
  const template = parsePathTemplate(pattern.pathTemplate);
  const { boundFields } = compilePathVariables(input, template);
  const variables = template.variables.map((variable): RuleVariable => {
    const name = variable.fieldPath.join(".");
    const path = resolveProtoPath(input, variable.fieldPath);
    if (path === undefined) throw new RuleProblem(`path variable "${name}" is not a field of ${input.typeName}`);
    return { ...variable, name, path, isMultiSegment: isMultiSegment(template, variable) };
  });
  const defaultMethod = pattern.body === "" ? "GET" : "POST";
  const httpMethod = pattern.httpMethod === anyMethod ? defaultMethod : pattern.httpMethod;
  if (forbiddenMethods.has(httpMethod)) throw new RuleProblem(`fetch does not allow the HTTP method ${httpMethod}`);
  if (pattern.body !== "" && (httpMethod === "GET" || httpMethod === "HEAD")) {
    throw new RuleProblem(`fetch does not allow a body with ${httpMethod}`);
  }
  const boundByPathOrBody = bindBody(input, pattern.body, boundFields);
  return { method, pattern, httpMethod, template, variables, boundByPathOrBody, routes };
}
