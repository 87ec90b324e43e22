"""Tables 2 and 3, all rows: missing runs are made, stopped ones resumed, and Table 3 comes out as one table.

Run:   python experiments/all_tables.py --seeds 3
       python experiments/all_tables.py --dry-run        (rows, parameters, operations and time)
"""

import table2
import table3_A
import table3_B
import table3_big
import table3_C
import table3_D
import table3_E

from repro.experiment import main_of

if __name__ == "__main__":
    main_of(table3_A, table3_B, table3_C, table3_D, table3_E, table3_big, table2)
