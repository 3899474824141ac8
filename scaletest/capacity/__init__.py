"""How much a load needs: autoscaling rules in simulation, and the size of a cluster."""
