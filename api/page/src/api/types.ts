// Names for the parts of the API that the page uses.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Answer = Schemas["RecommendationAnswer"];
export type Row = Schemas["Row"];
export type Summary = Schemas["Summary"];
export type FieldProblem = Schemas["FieldProblem"];
export type Estimate = Schemas["Estimate"];
export type Evidence = Schemas["Evidence"];
export type Configuration = Schemas["Configuration"];
export type KnobEffect = Schemas["KnobEffect"];
export type BoundSlack = Schemas["BoundSlack"];
export type BoundStep = Schemas["BoundStep"];
export type Saving = Schemas["Saving"];
export type WorkloadProfile = Schemas["WorkloadProfile-Input"];
export type Sla = Schemas["Sla"];
export type DeviceSummary = Schemas["DeviceSummary"];
export type DeviceDetail = Schemas["DeviceDetail"];
export type Preset = Schemas["Preset"];
export type Prediction = Schemas["Prediction"];
export type JobStatus = Schemas["JobStatus"];
export type WhatIfAnswer = Schemas["WhatIfAnswer"];
export type FleetAnswer = Schemas["FleetAnswer"];
export type FrontierAnswer = Schemas["FrontierAnswer"];
export type DatasetSummary = Schemas["DatasetSummary"];
export type ModelCard = Schemas["Document"];
export type Block = ModelCard["sections"][0]["blocks"][0];
export type PowerLaw = Schemas["PowerLaw"];
export type Law = Schemas["Law"];
export type LawLine = Schemas["LawLine"];
export type LawPoint = Schemas["LawPoint"];
export type LawMeasurement = Schemas["LawMeasurement"];
