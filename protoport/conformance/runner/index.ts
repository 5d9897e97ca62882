export { type HttpResponse, type Exchange, NoResponse } from "./response.ts";
export {
  type Case,
  type CaseRequest,
  casesFolder,
  type Expectation,
  type Field,
  type Json,
  type Need,
  needs,
  parseCase,
  readCases,
} from "./case.ts";
export { createHttp1Exchange } from "./http1.ts";
export { createHttp2Exchange } from "./http2.ts";
export { judge, type Verdict } from "./judge.ts";
export { hasFailed, type ReportForm, reportForms, countOutcomes as tally, type Tally, writeReport } from "./report.ts";
export { type Outcome, readKnownFailing, type Result, run, type RunOptions } from "./run.ts";
