/**
 * Which HTTP rules does a service config have? A service config is a google.api.Service in YAML or JSON.
 *
 * Flow: the text → a value (read-yaml, with the package `yaml`) → its rules.
 */
export { locateSelectors } from "./locate-selectors.ts";
export { parseServiceRules, serviceConfigMaxBytes } from "./parse-service-rules.ts";
export { readLocatedYaml, readYaml, YamlProblem, type YamlValue } from "./read-yaml.ts";
