// What a kilowatt-hour costs and emits.
import type { WorkloadProfile } from "../api/types";
import { Group, NumberField, TextField } from "../parts/field";
import { withFactors } from "./question";

/** Price and carbon; where one is stated, the saving is stated in it too. */
export function FactorsForm(props: {
  profile: WorkloadProfile;
  onChange: (profile: WorkloadProfile) => void;
}) {
  const { profile, onChange } = props;
  const factors = profile.factors ?? {};
  const set = (changes: Record<string, unknown>) => onChange(withFactors(profile, changes));
  return (
    <Group title="Price and CO2">
      <NumberField
        label="Price per kWh"
        name="electricity_price_per_kwh"
        min={0}
        value={factors.electricity_price_per_kwh}
        onChange={(price) =>
          set({
            electricity_price_per_kwh: price,
            currency: price === null ? null : (factors.currency ?? "EUR"),
          })
        }
      />
      <TextField
        label="Currency"
        name="currency"
        value={factors.currency}
        onChange={(currency) => set({ currency })}
      />
      <NumberField
        label="g CO2 per kWh"
        name="grid_carbon_grams_per_kwh"
        min={0}
        value={factors.grid_carbon_grams_per_kwh}
        onChange={(grams) => set({ grid_carbon_grams_per_kwh: grams })}
      />
      <NumberField
        label="PUE"
        name="power_usage_effectiveness"
        min={1}
        value={factors.power_usage_effectiveness}
        onChange={(pue) => set({ power_usage_effectiveness: pue })}
      />
      <p class="hint">Nothing is assumed: without a price there is no saving in money.</p>
    </Group>
  );
}
